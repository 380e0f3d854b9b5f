package node

import (
	"context"
	"encoding/json"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// patch sends the difference between two versions of the Node's metadata and status.
func (n *Node) patch(ctx context.Context, from, to *v1.Node) (*v1.Node, error) {
	body, err := statusPatch(from, to)
	if err != nil {
		return nil, fmt.Errorf("create node status patch: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	node, err := n.deps.Heartbeat.Nodes().Patch(ctx, n.cfg.NodeName, types.StrategicMergePatchType, body, metav1.PatchOptions{}, "status")
	if err != nil {
		return nil, fmt.Errorf("patch node status: %w", err)
	}
	return node, nil
}

func statusPatch(from, to *v1.Node) ([]byte, error) {
	to = to.DeepCopy()
	to.Spec = from.Spec
	addresses := to.Status.Addresses
	// The merge key of addresses is the type, but a node may have two addresses of a type, and
	// a merge would lose one. The patch replaces the whole list instead.
	replace := len(from.Status.Addresses) > 0 && !equality.Semantic.DeepEqual(from.Status.Addresses, addresses)
	if replace {
		to.Status.Addresses = from.Status.Addresses
	}
	old, err := json.Marshal(from)
	if err != nil {
		return nil, err
	}
	changed, err := json.Marshal(to)
	if err != nil {
		return nil, err
	}
	body, err := strategicpatch.CreateTwoWayMergePatch(old, changed, v1.Node{})
	if err != nil || !replace {
		return body, err
	}
	return replaceAddresses(body, addresses)
}

func replaceAddresses(body []byte, addresses []v1.NodeAddress) ([]byte, error) {
	var whole map[string]json.RawMessage
	if err := json.Unmarshal(body, &whole); err != nil {
		return nil, err
	}
	status := map[string]json.RawMessage{}
	if raw, ok := whole["status"]; ok {
		if err := json.Unmarshal(raw, &status); err != nil {
			return nil, err
		}
	}
	list := make([]any, 0, len(addresses)+1)
	for _, a := range addresses {
		list = append(list, a)
	}
	list = append(list, map[string]string{"$patch": "replace"})
	raw, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	status["addresses"] = raw
	if whole["status"], err = json.Marshal(status); err != nil {
		return nil, err
	}
	return json.Marshal(whole)
}

// differs compares labels, annotations and status of two Nodes, except heartbeat times.
func differs(a, b *v1.Node) bool {
	return !equality.Semantic.DeepEqual(withoutHeartbeats(a), withoutHeartbeats(b))
}

func withoutHeartbeats(node *v1.Node) *v1.Node {
	node = &v1.Node{Status: *node.Status.DeepCopy(), ObjectMeta: metav1.ObjectMeta{Labels: node.Labels, Annotations: node.Annotations}}
	for i := range node.Status.Conditions {
		node.Status.Conditions[i].LastHeartbeatTime = metav1.Time{}
	}
	return node
}
