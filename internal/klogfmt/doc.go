// Package klogfmt writes slog records in klog's text form or in the JSON form of Kubernetes
// components, so that log parsers written for the reference kubelet read them.
package klogfmt
