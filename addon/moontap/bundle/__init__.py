"""What a maintainer asks for, in one file: the shortest sequence that shows a fault, cut, scrubbed,
told, and asked again by a small program.
"""
