package path

import (
	"context"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/pod"
	"swiftlet/test/fakecri"
)

// An agent that died may have asked for a container which the runtime makes only when the
// pod's sandbox is already being removed, or gone. It goes like the rest of the pod, at once.
func TestAContainerThatComesLate(t *testing.T) {
	for name, removed := range map[string]bool{"while its sandbox is removed": false, "when all is gone": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				if err := w.wishes.apply([]byte("metadata: {name: web}\nspec: {containers: [{name: main, image: 'app:1'}]}")); err != nil {
					t.Fatal(err)
				}
				w.settle()
				ref, sandbox := pod.RefOf(w.wishes.list()[0]), w.runtime.Sandboxes()[0].Id
				appear := func() { w.runtime.AppearContainer(ref.Namespace, ref.Name, string(ref.UID), sandbox, "main") }
				came := false
				w.runtime.Stand(func(ctx context.Context, call fakecri.Call, act func() (any, error)) (any, error) {
					answer, err := w.between(ctx, call, act)
					if _, ok := call.Request.(*runtimeapi.RemovePodSandboxRequest); ok && !removed && !came {
						came = true
						appear()
					}
					return answer, err
				})
				if err := w.wishes.delete("web", 0); err != nil {
					t.Fatal(err)
				}
				w.settle()
				if removed {
					w.expect(w.showLeft(), nil)
					appear()
					came = true
				}
				w.settle()
				w.expect(w.showLeft(), nil)
				if !came {
					t.Error("no sandbox was removed")
				}
			})
		})
	}
}
