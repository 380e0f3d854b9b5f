// Package criproxy is a proxy between a kubelet and its container runtime. It forwards calls as bytes, so
// that fields it does not know are forwarded too. Its hooks see, delay, fail and change them.
package criproxy
