// Package images builds the container images of tests from programs of the host, without a
// registry.
package images
