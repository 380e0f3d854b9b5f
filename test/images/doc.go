// Package images makes the container images that tests run, from programs of this
// machine: no registry is reached.
package images
