// Package page serves the page of a node: what its pods and the node do, pushed to browsers as it changes. It samples
// usage every ten seconds while a page is open and every minute while none is, and does nothing else then.
package page
