package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// listWatch lists and watches objects of one kind.
type listWatch struct {
	list  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// await watches an object until check returns "". After the limit, the test fails with the last
// result of check. The object is nil while it does not exist.
func await[T any](t *testing.T, from listWatch, name string, limit time.Duration, check func(*T) string) *T {
	t.Helper()
	object, err := awaitErr(t.Context(), from, name, limit, check)
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// awaitErr is await for goroutines that must not call t.Fatal.
func awaitErr[T any](ctx context.Context, from listWatch, name string, limit time.Duration, check func(*T) string) (*T, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var missing string
	for ctx.Err() == nil { // a watch may end early; then list again
		object, stream, err := open[T](ctx, from, name)
		if err != nil {
			missing += err.Error()
			break
		}
		for ok := true; ok; object, ok = next[T](ctx, stream) {
			if missing = check(object); missing == "" {
				stream.Stop()
				return object, nil
			}
		}
		stream.Stop()
	}
	return nil, fmt.Errorf("after %v: %s", limit, missing)
}

// open lists the object and starts a watch from that version.
func open[T any](ctx context.Context, from listWatch, name string) (*T, watch.Interface, error) {
	options := byName(name)
	list, err := from.list(ctx, options)
	if err != nil {
		return nil, nil, err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return nil, nil, err
	}
	var object *T
	if len(items) > 0 {
		object, _ = any(items[0]).(*T)
	}
	at, err := meta.ListAccessor(list)
	if err != nil {
		return nil, nil, err
	}
	options.ResourceVersion = at.GetResourceVersion()
	stream, err := from.watch(ctx, options)
	return object, stream, err
}

// next returns the object after its next change; false if the watch or ctx has ended.
func next[T any](ctx context.Context, stream watch.Interface) (*T, bool) {
	select {
	case event, open := <-stream.ResultChan():
		object, ok := any(event.Object).(*T)
		if event.Type == watch.Deleted {
			object = nil
		}
		return object, open && ok
	case <-ctx.Done():
		return nil, false
	}
}

// record watches an object until the test calls the returned function, which returns every version
// in order.
func record[T any](t *testing.T, from listWatch, name string) func() []*T {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	object, stream, err := open[T](ctx, from, name)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	versions := []*T{object}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			object, ok := next[T](ctx, stream)
			if !ok {
				return
			}
			versions = append(versions, object)
		}
	}()
	stop := func() []*T {
		cancel()
		stream.Stop()
		<-done
		return versions
	}
	t.Cleanup(func() { stop() })
	return stop
}
