package demand

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
)

// page is how many objects are in memory at a time.
const page = 500

// AddStored adds the controllers that the stored objects of all resources need.
func (d *Demand) AddStored(ctx context.Context, objects metadata.Interface, resources map[schema.GroupVersionResource]struct{}) error {
	for resource := range resources {
		options := metav1.ListOptions{Limit: page}
		for {
			list, err := objects.Resource(resource).List(ctx, options)
			if err != nil {
				return fmt.Errorf("list %s: %w", resource.GroupResource(), err)
			}
			for i := range list.Items {
				d.Add(of(resource.GroupResource(), &list.Items[i])...)
			}
			if options.Continue = list.Continue; options.Continue == "" {
				break
			}
		}
	}
	return nil
}
