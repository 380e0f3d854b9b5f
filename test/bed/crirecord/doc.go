// Package crirecord stands between a kubelet and its container runtime: it passes every
// call on unchanged, and writes down what was asked and answered.
package crirecord
