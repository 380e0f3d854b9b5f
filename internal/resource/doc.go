// Package resource gives out what a node has and no two pods may share. Each kind has a
// folder of its own.
package resource
