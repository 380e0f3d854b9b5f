// Package conformance runs upstream's end-to-end tests on a kubelet in a node of the bed and records
// the outcomes. selection.yaml says which tests are run and why others are not. results/ has the
// last outcome of each test on each kubelet. docs/conformance.md is generated from them.
package conformance
