// Package resource holds the managers of a node's exclusive resources, each in a package of its
// own.
package resource
