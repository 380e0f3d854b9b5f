package agent

import (
	"context"
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"swiftlet/internal/kubeapi"
	"swiftlet/internal/resource/dra"
)

// makeClaims makes those who have drivers prepare resource claims.
func (a *Agent) makeClaims() (err error) {
	deps := dra.Deps{
		Wake:   func(uid types.UID) { a.pods.workers.Wake(uid) },
		Events: a.api.events,
		Meters: a.metrics.Claims(),
		Clock:  a.clock,
		Log:    a.log,
	}
	if c := a.api.clients; c != nil {
		deps.API = claimAPI{c.Kube, a.name}
	}
	gates := a.cfg.Features
	a.pods.claims, err = dra.New(dra.Config{
		RootDir: a.cfg.Flags.RootDir,
		Health:  gates.ResourceHealthStatus, HealthMessages: gates.ResourceHealthStatusMessage,
		OptionalOperations: gates.DRAOptionalNodeOperations,
	}, deps)
	return err
}

// claimAPI is what the API server knows of claims and of what drivers offer.
type claimAPI struct {
	client kubernetes.Interface
	node   string
}

func (c claimAPI) Claim(ctx context.Context, namespace, name string) (*resourceapi.ResourceClaim, error) {
	return kubeapi.Granted(ctx, func() (*resourceapi.ResourceClaim, error) {
		return c.client.ResourceV1().ResourceClaims(namespace).Get(ctx, name, metav1.GetOptions{})
	})
}

func (c claimAPI) Drivers(ctx context.Context) ([]string, error) {
	list, err := c.client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{FieldSelector: c.selector("")})
	if err != nil {
		return nil, fmt.Errorf("list resource slices: %w", err)
	}
	var names []string
	for _, s := range list.Items {
		if !slices.Contains(names, s.Spec.Driver) {
			names = append(names, s.Spec.Driver)
		}
	}
	return names, nil
}

func (c claimAPI) Withdraw(ctx context.Context, driver string) error {
	err := c.client.ResourceV1().ResourceSlices().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: c.selector(driver)})
	if err != nil {
		return fmt.Errorf("delete resource slices: %w", err)
	}
	return nil
}

// selector finds the slices of this node, of all drivers or one.
func (c claimAPI) selector(driver string) string {
	set := fields.Set{resourceapi.ResourceSliceSelectorNodeName: c.node}
	if driver != "" {
		set[resourceapi.ResourceSliceSelectorDriver] = driver
	}
	return set.String()
}
