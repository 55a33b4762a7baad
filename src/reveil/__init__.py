"""Reveil."""
