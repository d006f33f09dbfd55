"""The version of this release, by Semantic Versioning; see CHANGELOG.md. Plain module."""

VERSION = "0.1.0"
