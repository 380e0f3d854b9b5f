package kubeapi

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"sync"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"swiftlet/internal/kubeclient"
	"swiftlet/internal/require"
)

// TrustBundles caches the cluster's ClusterTrustBundle objects, from the first time that a pod
// needs one.
type TrustBundles struct {
	*collection
	once   sync.Once
	needed chan struct{}
}

// NewTrustBundles starts nothing; Run watches after the first read of a bundle.
func NewTrustBundles(client kubeclient.Interface) (*TrustBundles, error) {
	if err := require.Set("new trust bundle lister", map[string]any{"client": client}); err != nil {
		return nil, err
	}
	api := client.ClusterTrustBundles()
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			return api.List(ctx, opts)
		},
		WatchFuncWithContext: api.Watch,
	}
	trim := func(obj any) any {
		bundle, ok := obj.(*certificatesv1.ClusterTrustBundle)
		if !ok {
			return obj
		}
		trimmed := *bundle
		trimmed.ManagedFields, trimmed.Annotations = nil, nil
		return &trimmed
	}
	return &TrustBundles{
		collection: newCollection("clustertrustbundles", client, lw, &certificatesv1.ClusterTrustBundle{}, trim),
		needed:     make(chan struct{}),
	}, nil
}

// OnChange adds a function that is called after each change. Call it before Run.
func (t *TrustBundles) OnChange(f func()) { t.onChange = append(t.onChange, f) }

// Run watches, from the first read of a bundle until ctx is done.
func (t *TrustBundles) Run(ctx context.Context) error {
	select {
	case <-t.needed:
		return t.collection.Run(ctx)
	case <-ctx.Done():
		return nil
	}
}

func (t *TrustBundles) await(ctx context.Context) error {
	t.once.Do(func() { close(t.needed) })
	select {
	case <-t.Synced():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the list of ClusterTrustBundles: %w", ctx.Err())
	}
}

// AnchorsByName returns the certificates of one bundle as PEM, without duplicates. With
// allowMissing, a missing bundle is no error.
func (t *TrustBundles) AnchorsByName(ctx context.Context, name string, allowMissing bool) ([]byte, error) {
	if err := t.await(ctx); err != nil {
		return nil, err
	}
	obj, ok, err := t.GetByKey(name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("while getting ClusterTrustBundle: %w", err)
	case ok:
		return anchors(obj.(*certificatesv1.ClusterTrustBundle)), nil
	case allowMissing:
		return []byte{}, nil
	}
	return nil, fmt.Errorf("while getting ClusterTrustBundle: %w",
		apierrors.NewNotFound(certificatesv1.Resource("clustertrustbundle"), name))
}

// AnchorsBySigner is AnchorsByName for the signer's bundles that the selector matches: none for
// a nil selector, all for an empty one.
func (t *TrustBundles) AnchorsBySigner(ctx context.Context, signer string, selector *metav1.LabelSelector, allowMissing bool) ([]byte, error) {
	matcher, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, fmt.Errorf("while parsing label selector: %w", err)
	}
	if err := t.await(ctx); err != nil {
		return nil, err
	}
	var bundles []*certificatesv1.ClusterTrustBundle
	for _, obj := range t.List() {
		bundle := obj.(*certificatesv1.ClusterTrustBundle)
		if bundle.Spec.SignerName == signer && matcher.Matches(labels.Set(bundle.Labels)) {
			bundles = append(bundles, bundle)
		}
	}
	if len(bundles) == 0 && !allowMissing {
		return nil, errors.New("combination of signerName and labelSelector matched zero ClusterTrustBundles")
	}
	return anchors(bundles...), nil
}

// anchors merges the certificates of bundles. It sorts them, so that the output is stable.
func anchors(bundles ...*certificatesv1.ClusterTrustBundle) []byte {
	var all [][]byte
	for _, b := range bundles {
		for block, rest := pem.Decode([]byte(b.Spec.TrustBundle)); block != nil; block, rest = pem.Decode(rest) {
			all = append(all, block.Bytes)
		}
	}
	slices.SortFunc(all, bytes.Compare)
	out := []byte{}
	for _, der := range slices.CompactFunc(all, bytes.Equal) {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	return out
}
