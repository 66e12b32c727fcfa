"""What a person sees in mitmweb and in the mitmproxy console.

`views/` makes text of a request or reply (pure), `contentviews` hands it to mitmproxy; `facts`,
`comment` and `labels` make the words of the flow list (pure), `board` and `feed` put them there;
`commands` is what a person can type. Only what is said in `comment`, `marked` and metadata changes.
"""
