package status

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
)

// A panic while the status of a pod is written is retried as a failed write.
func TestPanicOfWriteIsRetried(t *testing.T) {
	run(t, func(b *bench) {
		b.server.fail(errPanic)
		b.Set(aPod("a"), phase(v1.PodRunning))
		time.Sleep(time.Second)
		b.expect("a a Running")
	})
}
