// Package conformance runs upstream's own end-to-end tests against a kubelet in a node of
// the bed, and keeps what came of each: selection.yaml says which are run and why others
// are not, results/ holds the last outcome of each on either kubelet, and
// docs/conformance.md is made from that.
package conformance
