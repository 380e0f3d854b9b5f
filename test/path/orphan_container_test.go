package path

import (
	"context"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/pod"
	"swiftlet/test/fakecri"
)

// The runtime may complete the CreateContainer call of a killed agent when the pod's sandbox is being
// removed or already removed. The agent must remove that container at once.
func TestOrphanContainerIsRemoved(t *testing.T) {
	for name, removed := range map[string]bool{"while the sandbox is being removed": false, "after the pod is removed": true} {
		t.Run(name, func(t *testing.T) {
			onTestNode(t, func(w *testNode) {
				if err := w.store.apply([]byte("metadata: {name: web}\nspec: {containers: [{name: main, image: 'app:1'}]}")); err != nil {
					t.Fatal(err)
				}
				w.settle()
				ref, sandbox := pod.RefOf(w.store.list()[0]), w.runtime.Sandboxes()[0].Id
				addContainer := func() { w.runtime.AddOrphanContainer(ref.Namespace, ref.Name, string(ref.UID), sandbox, "main") }
				appeared := false
				w.runtime.SetInterceptor(func(ctx context.Context, call fakecri.Call, act func() (any, error)) (any, error) {
					answer, err := w.interceptCall(ctx, call, act)
					if _, ok := call.Request.(*runtimeapi.RemovePodSandboxRequest); ok && !removed && !appeared {
						appeared = true
						addContainer()
					}
					return answer, err
				})
				if err := w.store.delete("web", 0); err != nil {
					t.Fatal(err)
				}
				w.settle()
				if removed {
					w.expect(w.showLeftovers(), nil)
					addContainer()
					appeared = true
				}
				w.settle()
				w.expect(w.showLeftovers(), nil)
				if !appeared {
					t.Error("no sandbox was removed")
				}
			})
		})
	}
}
