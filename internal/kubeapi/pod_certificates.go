package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"swiftlet/internal/pod"
)

// PodCertificate is a key and the certificates that somebody issued for it, both in PEM.
type PodCertificate struct {
	Key, Chain []byte
	// RefreshAt is when to ask for it again.
	RefreshAt time.Time
}

// PodCertificatesDeps is what PodCertificates works with.
type PodCertificatesDeps struct {
	Client kubernetes.Interface
	// Node is this node; requests name it and its uid.
	Node   func() (*v1.Node, error)
	Events pod.Events
	Clock  clock.PassiveClock
	// Jitter gives numbers in [0,1): nodes should not all renew at the same moment.
	Jitter func() float64
}

// PodCertificates has certificates issued for pods. A key never leaves the node; it lives
// here and in the pod's volume.
type PodCertificates struct {
	*collection
	deps   PodCertificatesDeps
	once   sync.Once
	needed chan struct{}

	mu      sync.Mutex
	records map[certificateKey]*certificateRecord
}

// certificateKey names one source of one volume.
type certificateKey struct {
	uid    types.UID
	volume string
	index  int
}

// certificateRecord is what is known of one source. Its owner is the volume: calls for one
// volume never overlap.
type certificateRecord struct {
	current  *PodCertificate // nil before the first is issued
	notAfter time.Time       // of current
	overdue  bool            // told of current
	expired  bool            // told of current
	// request is the one under way, "" for none; key is what it asks a certificate for.
	request string
	key     []byte
	// refused is why there will be none.
	refused error
}

const (
	// certificateJitter is the time over which renewals spread.
	certificateJitter = 5 * time.Minute
	// certificateOverdue is how late a renewal must be to be told of.
	certificateOverdue = 10 * time.Minute
	// certificateLook is how soon a renewal under way is looked at even if nobody tells.
	certificateLook = time.Minute
)

// NewPodCertificates starts nothing; Run watches once a certificate is asked for.
func NewPodCertificates(nodeName string, deps PodCertificatesDeps) (*PodCertificates, error) {
	if nodeName == "" || deps.Client == nil || deps.Node == nil || deps.Events == nil || deps.Clock == nil || deps.Jitter == nil {
		return nil, errors.New("make pod certificates: the node's name, Client, Node, Events, Clock and Jitter are needed")
	}
	api := deps.Client.CertificatesV1().PodCertificateRequests(metav1.NamespaceAll)
	selector := fields.OneTermEqualSelector("spec.nodeName", nodeName).String()
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			opts.FieldSelector = selector
			return api.List(ctx, opts)
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			opts.FieldSelector = selector
			return api.Watch(ctx, opts)
		},
	}
	keep := func(obj any) any {
		request, ok := obj.(*certificatesv1.PodCertificateRequest)
		if !ok {
			return obj
		}
		kept := *request
		kept.ManagedFields = nil
		return &kept
	}
	return &PodCertificates{
		collection: newCollection("podcertificaterequests", deps.Client, lw, &certificatesv1.PodCertificateRequest{}, keep),
		deps:       deps,
		needed:     make(chan struct{}),
		records:    map[certificateKey]*certificateRecord{},
	}, nil
}

// OnChange adds a function that is called when a request was answered. Call it before Run.
func (p *PodCertificates) OnChange(f func()) { p.changed = append(p.changed, f) }

// Run watches, from the first need of a certificate until ctx is done.
func (p *PodCertificates) Run(ctx context.Context) error {
	select {
	case <-p.needed:
		return p.collection.Run(ctx)
	case <-ctx.Done():
		return nil
	}
}

// Forget drops the keys of a pod that is gone.
func (p *PodCertificates) Forget(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key := range p.records {
		if key.uid == uid {
			delete(p.records, key)
		}
	}
}

func (p *PodCertificates) record(of *v1.Pod, volume string, index int) *certificateRecord {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := certificateKey{of.UID, volume, index}
	r := p.records[key]
	if r == nil {
		r = &certificateRecord{}
		p.records[key] = r
	}
	return r
}

// Adopt offers what was found in a volume, from before the agent was restarted. It is used
// until another one is issued, which is asked for at once.
func (p *PodCertificates) Adopt(of *v1.Pod, volume string, index int, key, chain []byte) {
	r := p.record(of, volume, index)
	if r.current != nil {
		return
	}
	notAfter, err := pairs(key, chain)
	if err != nil || !p.deps.Clock.Now().Before(notAfter) {
		return
	}
	r.current, r.notAfter = &PodCertificate{Key: key, Chain: chain, RefreshAt: p.deps.Clock.Now()}, notAfter
}

// Get returns the certificate for one source of a pod's volume, and asks for one where
// there is none or it is to be renewed. An error before the first is issued is a wait:
// OnChange tells when to call again.
func (p *PodCertificates) Get(ctx context.Context, of *v1.Pod, volume string, index int, s *v1.PodCertificateProjection) (PodCertificate, error) {
	p.once.Do(func() { close(p.needed) })
	r := p.record(of, volume, index)
	if r.refused != nil {
		return PodCertificate{}, r.refused
	}
	now := p.deps.Clock.Now()
	if r.current != nil && now.Before(r.current.RefreshAt) {
		return *r.current, nil
	}
	if err := p.advance(ctx, r, of, s); err != nil {
		if r.current == nil || r.refused != nil {
			return PodCertificate{}, err
		}
	}
	if r.current == nil {
		return PodCertificate{}, errors.New("credential bundle is not issued yet")
	}
	p.tellLate(r, of, now)
	got := *r.current
	if !now.Before(got.RefreshAt) {
		got.RefreshAt = now.Add(certificateLook)
	}
	return got, nil
}

// advance makes a request, or looks at what became of the one under way.
func (p *PodCertificates) advance(ctx context.Context, r *certificateRecord, of *v1.Pod, s *v1.PodCertificateProjection) error {
	if r.request == "" {
		return p.ask(ctx, r, of, s)
	}
	request, err := p.find(ctx, of.Namespace, r.request)
	if apierrors.IsNotFound(err) { // somebody deleted it
		r.request, r.key = "", nil
		return p.ask(ctx, r, of, s)
	}
	if err != nil {
		return err
	}
	for _, c := range request.Status.Conditions {
		switch c.Type {
		case certificatesv1.PodCertificateRequestConditionTypeDenied:
			r.refused = fmt.Errorf("PodCertificateRequest was permanently denied: reason=%q message=%q", c.Reason, c.Message)
		case certificatesv1.PodCertificateRequestConditionTypeFailed:
			r.refused = fmt.Errorf("PodCertificateRequest was permanently failed: reason=%q message=%q", c.Reason, c.Message)
		case certificatesv1.PodCertificateRequestConditionTypeIssued:
			p.take(r, request)
		}
	}
	return r.refused
}

func (p *PodCertificates) take(r *certificateRecord, request *certificatesv1.PodCertificateRequest) {
	issued := &PodCertificate{Key: r.key, Chain: cleanChain([]byte(request.Status.CertificateChain))}
	if at := request.Status.BeginRefreshAt; at != nil {
		issued.RefreshAt = at.Add(time.Duration(p.deps.Jitter() * float64(certificateJitter)))
	}
	*r = certificateRecord{current: issued}
	if at := request.Status.NotAfter; at != nil {
		r.notAfter = at.Time
	}
}

// find reads a request: from the watch, or where that has not seen it yet directly.
func (p *PodCertificates) find(ctx context.Context, namespace, name string) (*certificatesv1.PodCertificateRequest, error) {
	if obj, ok, err := p.GetByKey(namespace + "/" + name); err == nil && ok {
		return obj.(*certificatesv1.PodCertificateRequest), nil
	}
	got, err := p.deps.Client.CertificatesV1().PodCertificateRequests(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read PodCertificateRequest %s/%s: %w", namespace, name, err)
	}
	return got, nil
}

// ask makes a key and a request for a certificate.
func (p *PodCertificates) ask(ctx context.Context, r *certificateRecord, of *v1.Pod, s *v1.PodCertificateProjection) error {
	account, err := Granted(ctx, func() (*v1.ServiceAccount, error) {
		return p.deps.Client.CoreV1().ServiceAccounts(of.Namespace).Get(ctx, of.Spec.ServiceAccountName, metav1.GetOptions{})
	})
	if err != nil {
		return fmt.Errorf("while fetching service account: %w", err)
	}
	node, err := p.deps.Node()
	if err != nil {
		return fmt.Errorf("while getting node object from local cache: %w", err)
	}
	key, proof, err := newKey(s.KeyType)
	if err != nil {
		return fmt.Errorf("while generating keypair: %w", err)
	}
	request := &certificatesv1.PodCertificateRequest{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: of.Namespace, GenerateName: "req-",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: of.Name, UID: of.UID}},
		},
		Spec: certificatesv1.PodCertificateRequestSpec{
			SignerName: s.SignerName,
			PodName:    of.Name, PodUID: of.UID,
			ServiceAccountName: account.Name, ServiceAccountUID: account.UID,
			NodeName: types.NodeName(node.Name), NodeUID: node.UID,
			MaxExpirationSeconds:      s.MaxExpirationSeconds,
			StubPKCS10Request:         proof,
			UnverifiedUserAnnotations: s.UserAnnotations,
		},
	}
	made, err := Granted(ctx, func() (*certificatesv1.PodCertificateRequest, error) {
		return p.deps.Client.CertificatesV1().PodCertificateRequests(of.Namespace).Create(ctx, request, metav1.CreateOptions{})
	})
	if err != nil {
		return fmt.Errorf("while creating PodCertificateRequest: %w", err)
	}
	r.request, r.key = made.Name, key
	return nil
}

// tellLate says once of each certificate that its renewal takes too long.
func (p *PodCertificates) tellLate(r *certificateRecord, of *v1.Pod, now time.Time) {
	if now.After(r.current.RefreshAt.Add(certificateOverdue)) && !r.overdue {
		r.overdue = true
		p.deps.Events.Eventf(pod.EventRef(of, ""), v1.EventTypeWarning, "CertificateOverdueForRefresh", "PodCertificate refresh overdue")
	}
	if now.After(r.notAfter) && !r.expired {
		r.expired = true
		p.deps.Events.Eventf(pod.EventRef(of, ""), v1.EventTypeWarning, "CertificateExpired", "PodCertificate expired")
	}
}
