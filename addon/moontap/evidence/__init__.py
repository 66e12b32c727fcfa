"""The evidence that people have: what a file is, and the turns that can be told from it.

Files in, findings with their place in the file out. Never writes; nothing leaves unmasked.
"""
