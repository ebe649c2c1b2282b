"""Sessions, which run plans on a device."""
