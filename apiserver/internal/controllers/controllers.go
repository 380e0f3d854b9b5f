// Package controllers runs those controllers of kube-controller-manager without which no pod can be created
// (default service accounts, the ConfigMap with the CA), no namespace deleted, no certificate issued, and the roles
// view, edit and admin permit nothing.
package controllers

import (
	"context"
	"fmt"
	"path"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/certificates/rootcacertpublisher"
	"k8s.io/kubernetes/pkg/controller/certificates/signer"
	"k8s.io/kubernetes/pkg/controller/clusterroleaggregation"
	"k8s.io/kubernetes/pkg/controller/namespace"
	"k8s.io/kubernetes/pkg/controller/serviceaccount"

	"swiftlet/internal/boundedio"
)

const (
	workers = 2
	// The namespace controller makes many requests in a row.
	namespaceQPS, namespaceBurst = 100, 1000
)

// certificateLife is how long certificates are valid that requests do not limit, as with
// kube-controller-manager.
const certificateLife = 365 * 24 * time.Hour

// CA has the files of the certificate authority.
type CA struct{ Certificate, Key string }

// Set is a set of controllers that share informers.
type Set struct {
	informers []informers.SharedInformerFactory
	run       []func(ctx context.Context, workers int)
}

// New creates the controllers. It makes requests: the API server must be serving.
func New(ctx context.Context, config *rest.Config, shared informers.SharedInformerFactory, ca CA) (*Set, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create controllers: %w", err)
	}
	fast := rest.CopyConfig(config)
	fast.QPS, fast.Burst = namespaceQPS, namespaceBurst
	namespaceClient, err := kubernetes.NewForConfig(fast)
	if err != nil {
		return nil, fmt.Errorf("create controllers: %w", err)
	}
	objects, err := metadata.NewForConfig(fast)
	if err != nil {
		return nil, fmt.Errorf("create controllers: %w", err)
	}
	core := shared.Core().V1()
	accounts, err := serviceaccount.NewServiceAccountsController(klog.FromContext(ctx), core.ServiceAccounts(), core.Namespaces(),
		client, serviceaccount.DefaultServiceAccountsControllerOptions())
	if err != nil {
		return nil, fmt.Errorf("create service account controller: %w", err)
	}
	// Without the ConfigMaps of users, which the publisher ignores.
	published := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("metadata.name", rootcacertpublisher.RootCACertConfigMapName).String()
	}))
	root, err := boundedio.ReadFile(ca.Certificate, boundedio.Small)
	if err != nil {
		return nil, fmt.Errorf("create root CA publisher: %w", err)
	}
	publisher, err := rootcacertpublisher.NewPublisher(published.Core().V1().ConfigMaps(), core.Namespaces(), client, root)
	if err != nil {
		return nil, fmt.Errorf("create root CA publisher: %w", err)
	}
	namespaces := namespace.NewNamespaceController(ctx, namespaceClient, objects,
		namespaceClient.Discovery().ServerPreferredNamespacedResources, core.Namespaces(), 0, corev1.FinalizerKubernetes)
	roles := clusterroleaggregation.NewClusterRoleAggregation(shared.Rbac().V1().ClusterRoles(), client.RbacV1())
	set := &Set{
		informers: []informers.SharedInformerFactory{shared, published},
		run:       []func(context.Context, int){accounts.Run, publisher.Run, namespaces.Run, roles.Run},
	}
	return set, set.addSigners(ctx, client, ca)
}

// addSigners adds a controller for each signer, which issues the certificates of approved requests.
func (s *Set) addSigners(ctx context.Context, client kubernetes.Interface, ca CA) error {
	requests := s.informers[0].Certificates().V1().CertificateSigningRequests()
	for _, name := range []string{certificatesv1.KubeletServingSignerName, certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.KubeAPIServerClientSignerName} {
		controller, err := signer.NewCSRSigningController(ctx, "csrsigning-"+path.Base(name), name, client, requests, ca.Certificate, ca.Key, certificateLife)
		if err != nil {
			return fmt.Errorf("create signer of certificates: %w", err)
		}
		s.run = append(s.run, controller.Run)
	}
	return nil
}

// Run runs the controllers until ctx is done.
func (s *Set) Run(ctx context.Context) {
	for _, factory := range s.informers {
		factory.Start(ctx.Done()) // starts those that are not running
	}
	var running sync.WaitGroup
	for _, run := range s.run {
		running.Go(func() { run(ctx, workers) })
	}
	running.Wait()
}
