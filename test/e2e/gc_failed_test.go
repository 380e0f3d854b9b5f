package e2e

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestContainerGCFailed: without the runtime no dead containers are removed, and an event about the node says so.
func TestContainerGCFailed(t *testing.T) {
	t.Parallel()
	node := ownNode(t, "gc-failed")
	object, err := client().CoreV1().Nodes().Get(t.Context(), node.Name(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	about := corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node.Name(), UID: object.UID}
	if err := node.StopContainerd(); err != nil {
		t.Fatal(err)
	}
	const want = `rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing: dial unix `
	eventually(t, timeoutFor(timeout, 90*time.Second), func() string {
		list, err := client().CoreV1().Events("default").List(t.Context(), metav1.ListOptions{
			FieldSelector: "involvedObject.kind=Node,reason=ContainerGCFailed,type=" + corev1.EventTypeWarning + ",involvedObject.name=" + node.Name(),
		})
		if err != nil {
			return err.Error()
		}
		var messages []string
		for _, e := range list.Items {
			if strings.HasPrefix(e.Message, want) && component(&e) == "kubelet" && e.InvolvedObject == about {
				return ""
			}
			messages = append(messages, e.InvolvedObject.String()+": "+e.Message)
		}
		return "events of the node:\n" + strings.Join(messages, "\n")
	})
	if err := node.StartContainerd(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitNode(t, node.Name(), timeout, nodeReady(corev1.ConditionTrue))
}
