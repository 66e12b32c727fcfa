"""A saved session as an API: recorded exchanges, the requests that ask for them again, a server.

`library` reads captures, `normal` says what of a request counts, `server` serves. Nothing in here
ever opens a connection.
"""
