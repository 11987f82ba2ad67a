"""What can a number format represent, and how many bytes does it take?"""

from sixnd.formats.record import Format, bits_per_value, format_names, get_format, storage_bytes

__all__ = ["Format", "bits_per_value", "format_names", "get_format", "storage_bytes"]
