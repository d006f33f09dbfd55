"""The release that this is, by Semantic Versioning; see CHANGELOG.md."""

VERSION = "0.1.0"
