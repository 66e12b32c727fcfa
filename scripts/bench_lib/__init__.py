"""What `scripts/bench` runs: mitmproxy with the addon against bare mitmproxy, side by side.

Each module has one job: `payload` makes requests, `upstream` answers them, `client` times them,
`procfs` reads the proxies' CPU and memory, `rig` starts and stops processes, `sections` says
what is measured, `wire` times the framing alone, `reading` the reading of a large capture (made by
`bigcapture`, read by `readers`), `web` mitmweb and its pages (opened by `pages`, asked by
`webclient`), `stats` and `table` make figures of it.
"""
