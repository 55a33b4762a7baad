"""The console in the browser and its service (`reveil serve`). Nothing else of the package imports it."""
