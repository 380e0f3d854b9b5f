package server

import (
	"context"
	"os"
	"runtime/debug"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"swiftlet/apiserver/internal/pages"
)

// gcPercent trades a little CPU under load for memory: an idle server allocates hardly anything.
const gcPercent = 50

// limitGarbage sets the size of the heap in relation to what is in use, unless GOGC does.
func limitGarbage() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}

// whenReady calls do when the server is ready.
func whenReady(ctx context.Context, config *rest.Config, do func()) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		klog.ErrorS(err, "failed to wait until the server is ready")
		return
	}
	ready := func(ctx context.Context) (bool, error) {
		return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error() == nil, nil
	}
	if wait.PollUntilContextCancel(ctx, time.Second, false, ready) == nil {
		do()
	}
}

// releaseMemory gives back memory that is not in use, and that comes back when it is needed.
func releaseMemory() {
	debug.FreeOSMemory()
	if err := pages.Release(); err != nil {
		klog.ErrorS(err, "failed to release program pages")
	}
}
