// Package oom watches the kernel log for processes that the OOM killer killed, and records an
// event for those it killed because the whole machine was out of memory.
package oom
