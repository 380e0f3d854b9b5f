// Package crirecord is a proxy between a kubelet and its container runtime. It forwards every call
// unchanged and records request and response.
package crirecord
