package kubeapi

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// answerTimeout is how long a list, and the start of a watch, may remain unanswered. It is longer than the
// minute after which an API server itself ends a request. A proxy in between may never answer: pods would
// wait for ever, as they are not watched until the Node is known.
const answerTimeout = 90 * time.Second

// listInTime lists, or fails after answerTimeout.
func listInTime(ctx context.Context, source *cache.ListWatch, o metav1.ListOptions) (runtime.Object, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	return source.ListWithContextFunc(ctx, o)
}

// watchInTime starts a watch, or fails after answerTimeout. It calls abandoned if the API server has not ended
// the watch answerTimeout after its time was over: nothing else shows that it is dead.
func watchInTime(ctx context.Context, source *cache.ListWatch, o metav1.ListOptions, abandoned func()) (watch.Interface, error) {
	ctx, cancel := context.WithCancel(ctx)
	limit, stop := context.WithTimeout(ctx, answerTimeout)
	defer stop()
	answered := context.AfterFunc(limit, cancel)
	w, err := source.WatchFuncWithContext(ctx, o)
	inTime := answered()
	if err == nil && !inTime {
		w.Stop()
		err = context.Cause(limit)
	}
	if err != nil {
		cancel()
		if !inTime {
			err = fmt.Errorf("watch was not answered within %v: %w", answerTimeout, err)
		}
		return nil, err
	}
	if o.TimeoutSeconds != nil {
		timer := time.AfterFunc(time.Duration(*o.TimeoutSeconds)*time.Second+answerTimeout, abandoned)
		return startedWatch{w, func() { timer.Stop(); cancel() }}, nil
	}
	return startedWatch{w, cancel}, nil
}

// startedWatch releases the watch's context when it is stopped.
type startedWatch struct {
	watch.Interface
	cancel func()
}

func (w startedWatch) Stop() {
	w.Interface.Stop()
	w.cancel()
}
