package observe

import (
	"context"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/pod"
	"swiftlet/test/fakecri"
)

// omitting returns empty lists instead of those of the methods.
func omitting(methods ...string) fakecri.Interceptor {
	return func(_ context.Context, call fakecri.Call, act func() (any, error)) (any, error) {
		for _, method := range methods {
			if call.Method != method {
				continue
			}
			if method == "ListContainers" {
				return &runtimeapi.ListContainersResponse{}, nil
			}
			return &runtimeapi.ListPodSandboxResponse{}, nil
		}
		return act()
	}
}

// A runtime that omits a running container must not lead to a second one.
func TestOmittedPodIsNotRemoved(t *testing.T) {
	for name, methods := range map[string][]string{
		"container":                 {"ListContainers"},
		"sandbox":                   {"ListPodSandbox"},
		"sandbox and its container": {"ListContainers", "ListPodSandbox"},
	} {
		t.Run(name, func(t *testing.T) {
			runtime := fakecri.Start(t)
			sandbox, ids := runtime.RunPod("ns", "a", "u", "c")
			o := start(t, runtime, Config{RelistPeriod: 10 * time.Millisecond, PollPeriod: 10 * time.Millisecond}, nil)
			runtime.SetInterceptor(omitting(methods...))
			awaitRelists(t, runtime, 3)
			if _, err := o.Refresh(t.Context(), "u"); err == nil {
				t.Error("a read succeeded without the objects")
			}
			if seen, ok := o.Get("u"); !ok || seen.Sandbox() == nil || seen.Sandbox().ID != sandbox || seen.Latest("c") == nil {
				t.Errorf("observed: %+v", seen)
			}
			runtime.SetInterceptor(nil)
			runtime.Exit(ids[0], 0)
			o.await("u", "c", "exited")
		})
	}
}

// A pod that starts during a relist is not in its list, and not omitted either.
func TestPodOfAfterTheListIsNotOmitted(t *testing.T) {
	runtime := fakecri.Start(t)
	o := newObserver(t, runtime, Config{}, nil)
	began := time.Now()
	runtime.RunPod("ns", "a", "u", "c")
	if _, err := o.Refresh(t.Context(), "u"); err != nil {
		t.Fatal(err)
	}
	if s, err := o.readListed(t.Context(), &podListing{ref: pod.Ref{UID: "u"}}, began); err != nil {
		t.Error(err)
	} else {
		o.store(s)
	}
	if seen, _ := o.Get("u"); seen.Latest("c") == nil {
		t.Errorf("observed: %+v", seen)
	}
}
