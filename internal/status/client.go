package status

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// metadataOnly requests a response without spec and status, which saves encoding and decoding the
// whole pod.
const metadataOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

// NewClient returns a Client that uses core/v1's REST client.
func NewClient(core rest.Interface) Client { return restClient{core} }

type restClient struct{ core rest.Interface }

func (c restClient) PatchStatus(ctx context.Context, namespace, name string, patch []byte) (string, error) {
	result := c.core.Patch(types.StrategicMergePatchType).
		Namespace(namespace).Resource("pods").Name(name).SubResource("status").
		SetHeader("Accept", metadataOnly).
		Body(patch).Do(ctx)
	if err := result.Error(); err != nil {
		return "", err
	}
	body, err := result.Raw()
	if err != nil {
		return "", err
	}
	var object metav1.PartialObjectMetadata
	if err := json.Unmarshal(body, &object); err != nil {
		return "", fmt.Errorf("decode response: %w", err)
	}
	return object.ResourceVersion, nil
}

func (c restClient) DeletePod(ctx context.Context, namespace, name string, uid types.UID) error {
	return c.core.Delete().
		Namespace(namespace).Resource("pods").Name(name).
		Body(&metav1.DeleteOptions{
			GracePeriodSeconds: ptr.To[int64](0),
			Preconditions:      metav1.NewUIDPreconditions(string(uid)),
		}).
		Do(ctx).Error()
}

// isStale reports whether an event with version seen is older than the publisher's own write. Versions
// that cannot be compared are not stale.
func isStale(seen, written string) bool {
	if seen == "" || written == "" {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(seen, written)
	return err == nil && order < 0
}
