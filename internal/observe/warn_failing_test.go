package observe

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
)

type recordEvents func(about, text string)

func (r recordEvents) Eventf(o runtime.Object, kind, reason, format string, args ...any) {
	about := o.(*v1.ObjectReference)
	r(about.Kind+" "+about.Name, kind+" "+reason+" "+fmt.Sprintf(format, args...))
}

func TestWarnFailing(t *testing.T) {
	now := clocktesting.NewFakeClock(time.Unix(1000, 0))
	var warned []string
	o, err := New(Config{}, Deps{
		Runtime: struct{ Runtime }{}, Clock: now, Log: slog.New(slog.DiscardHandler),
		Node: func() *v1.ObjectReference { return &v1.ObjectReference{Kind: "Node", Name: "n"} },
		Events: recordEvents(func(about, text string) {
			warned = append(warned, now.Since(time.Unix(1000, 0)).String()+" "+about+" "+text)
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	o.health.start(now.Now())
	o.health.finish(now.Now(), nil)
	w := failingWarner{o: o}
	fails := func(seconds int) { // a relist fails every second
		for range seconds {
			now.Step(time.Second)
			o.health.start(now.Now())
			err := errors.New("connection refused")
			o.health.finish(now.Now(), err)
			w.failed(err)
		}
	}
	fails(2) // as during a restart of the runtime
	o.health.start(now.Now())
	o.health.finish(now.Now(), nil)
	fails(70)
	want := []string{"6s Node n Warning ContainerGCFailed connection refused", "1m6s Node n Warning ContainerGCFailed connection refused"}
	if !slices.Equal(warned, want) {
		t.Errorf("warnings %q, want %q", warned, want)
	}
}
