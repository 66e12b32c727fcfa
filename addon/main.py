"""What `mitmdump -s`, `mitmproxy -s` and `mitmweb -s` load."""

from moontap.addon import Moontap

addons = [Moontap()]
