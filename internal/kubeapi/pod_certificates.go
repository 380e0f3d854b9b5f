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
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"swiftlet/internal/kubeclient"
	"swiftlet/internal/pod"
	"swiftlet/internal/require"
)

// PodCertificate is a private key and its certificate chain, both in PEM.
type PodCertificate struct {
	Key, Chain []byte
	// RefreshAt is when to call Get again.
	RefreshAt time.Time
}

// PodCertificatesDeps is what PodCertificates works with.
type PodCertificatesDeps struct {
	Client kubeclient.Interface
	// Node returns this node; requests contain its name and uid.
	Node   func() (*v1.Node, error)
	Events pod.Events
	Clock  clock.PassiveClock
	// Jitter returns numbers in [0,1), which spread the renewals of nodes.
	Jitter func() float64
}

// PodCertificates requests certificates for pods. A private key never leaves the node; it is in
// memory and in the pod's volume.
type PodCertificates struct {
	*collection
	deps   PodCertificatesDeps
	once   sync.Once
	needed chan struct{}

	mu      sync.Mutex
	records map[certificateKey]*certificateRecord
}

// certificateKey identifies one source of one volume.
type certificateKey struct {
	uid    types.UID
	volume string
	index  int
}

// certificateRecord is the state of one source. Calls for one volume never overlap, so it needs
// no lock.
type certificateRecord struct {
	current         *PodCertificate // nil before the first is issued
	notAfter        time.Time       // of current
	overdueReported bool            // an event was recorded for current
	expiredReported bool            // an event was recorded for current
	// request is the name of the pending request, "" for none; key is its private key.
	request string
	key     []byte
	// permanent is the error of a denied or failed request: no certificate will be issued.
	permanent error
}

const (
	// certificateJitter is the period over which renewals spread.
	certificateJitter = 5 * time.Minute
	// certificateOverdue is the delay of a renewal after which an event is recorded.
	certificateOverdue = 10 * time.Minute
	// certificatePoll is the interval at which a pending renewal is checked without a
	// notification.
	certificatePoll = time.Minute
)

// NewPodCertificates starts nothing; Run watches after the first Get.
func NewPodCertificates(nodeName string, deps PodCertificatesDeps) (*PodCertificates, error) {
	if err := require.Set("new pod certificates", map[string]any{
		"nodeName": nodeName, "Client": deps.Client, "Node": deps.Node, "Events": deps.Events,
		"Clock": deps.Clock, "Jitter": deps.Jitter,
	}); err != nil {
		return nil, err
	}
	api := deps.Client.PodCertificateRequests(metav1.NamespaceAll)
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
	trim := func(obj any) any {
		request, ok := obj.(*certificatesv1.PodCertificateRequest)
		if !ok {
			return obj
		}
		trimmed := *request
		trimmed.ManagedFields = nil
		return &trimmed
	}
	return &PodCertificates{
		collection: newCollection("podcertificaterequests", deps.Client, lw, &certificatesv1.PodCertificateRequest{}, trim),
		deps:       deps,
		needed:     make(chan struct{}),
		records:    map[certificateKey]*certificateRecord{},
	}, nil
}

// OnChange adds a function that is called after each change of a request. Call it before Run.
func (p *PodCertificates) OnChange(f func()) { p.onChange = append(p.onChange, f) }

// Run watches, from the first Get until ctx is done.
func (p *PodCertificates) Run(ctx context.Context) error {
	select {
	case <-p.needed:
		return p.collection.Run(ctx)
	case <-ctx.Done():
		return nil
	}
}

// Forget deletes the keys of a removed pod.
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

// Adopt takes over the certificate that an earlier run of the agent wrote into a volume. Get
// returns it until a new one is issued, which Get requests at once.
func (p *PodCertificates) Adopt(of *v1.Pod, volume string, index int, key, chain []byte) {
	r := p.record(of, volume, index)
	if r.current != nil {
		return
	}
	notAfter, err := checkKeyPair(key, chain)
	if err != nil || !p.deps.Clock.Now().Before(notAfter) {
		return
	}
	r.current, r.notAfter = &PodCertificate{Key: key, Chain: chain, RefreshAt: p.deps.Clock.Now()}, notAfter
}

// Get returns the certificate for one source of a pod's volume, and requests one if there is
// none or it is due for renewal. Until the first is issued it returns an error; OnChange
// functions are called when to retry.
func (p *PodCertificates) Get(ctx context.Context, of *v1.Pod, volume string, index int, s *v1.PodCertificateProjection) (PodCertificate, error) {
	p.once.Do(func() { close(p.needed) })
	r := p.record(of, volume, index)
	if r.permanent != nil {
		return PodCertificate{}, r.permanent
	}
	now := p.deps.Clock.Now()
	if r.current != nil && now.Before(r.current.RefreshAt) {
		return *r.current, nil
	}
	if err := p.advance(ctx, r, of, s); err != nil {
		if r.current == nil || r.permanent != nil {
			return PodCertificate{}, err
		}
	}
	if r.current == nil {
		return PodCertificate{}, errors.New("credential bundle is not issued yet")
	}
	p.reportLate(r, of, now)
	got := *r.current
	if !now.Before(got.RefreshAt) {
		got.RefreshAt = now.Add(certificatePoll)
	}
	return got, nil
}

// advance creates a request, or checks the pending one.
func (p *PodCertificates) advance(ctx context.Context, r *certificateRecord, of *v1.Pod, s *v1.PodCertificateProjection) error {
	if r.request == "" {
		return p.createRequest(ctx, r, of, s)
	}
	request, err := p.find(ctx, of.Namespace, r.request)
	if apierrors.IsNotFound(err) { // deleted from outside
		r.request, r.key = "", nil
		return p.createRequest(ctx, r, of, s)
	}
	if err != nil {
		return err
	}
	for _, c := range request.Status.Conditions {
		switch c.Type {
		case certificatesv1.PodCertificateRequestConditionTypeDenied:
			r.permanent = fmt.Errorf("PodCertificateRequest was permanently denied: reason=%q message=%q", c.Reason, c.Message)
		case certificatesv1.PodCertificateRequestConditionTypeFailed:
			r.permanent = fmt.Errorf("PodCertificateRequest was permanently failed: reason=%q message=%q", c.Reason, c.Message)
		case certificatesv1.PodCertificateRequestConditionTypeIssued:
			p.setIssued(r, request)
		}
	}
	return r.permanent
}

func (p *PodCertificates) setIssued(r *certificateRecord, request *certificatesv1.PodCertificateRequest) {
	issued := &PodCertificate{Key: r.key, Chain: cleanChain([]byte(request.Status.CertificateChain))}
	if at := request.Status.BeginRefreshAt; at != nil {
		issued.RefreshAt = at.Add(time.Duration(p.deps.Jitter() * float64(certificateJitter)))
	}
	// A clock that is ahead, or the signer, may make it due at once. Each request would then lead to the next.
	if earliest := p.deps.Clock.Now().Add(certificatePoll); issued.RefreshAt.Before(earliest) {
		issued.RefreshAt = earliest
	}
	*r = certificateRecord{current: issued}
	if at := request.Status.NotAfter; at != nil {
		r.notAfter = at.Time
	}
}

// find reads a request from the cache, or directly if the watch has not delivered it yet.
func (p *PodCertificates) find(ctx context.Context, namespace, name string) (*certificatesv1.PodCertificateRequest, error) {
	if obj, ok, err := p.GetByKey(namespace + "/" + name); err == nil && ok {
		return obj.(*certificatesv1.PodCertificateRequest), nil
	}
	got, err := p.deps.Client.PodCertificateRequests(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read PodCertificateRequest %s/%s: %w", namespace, name, err)
	}
	return got, nil
}

// createRequest generates a key and creates a PodCertificateRequest for it.
func (p *PodCertificates) createRequest(ctx context.Context, r *certificateRecord, of *v1.Pod, s *v1.PodCertificateProjection) error {
	account, err := RetryForbidden(ctx, func() (*v1.ServiceAccount, error) {
		return p.deps.Client.ServiceAccounts(of.Namespace).Get(ctx, of.Spec.ServiceAccountName, metav1.GetOptions{})
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
	created, err := RetryForbidden(ctx, func() (*certificatesv1.PodCertificateRequest, error) {
		return p.deps.Client.PodCertificateRequests(of.Namespace).Create(ctx, request, metav1.CreateOptions{})
	})
	if err != nil {
		return fmt.Errorf("while creating PodCertificateRequest: %w", err)
	}
	r.request, r.key = created.Name, key
	return nil
}

// reportLate records an event, once per certificate, for an overdue renewal and for the expiry.
func (p *PodCertificates) reportLate(r *certificateRecord, of *v1.Pod, now time.Time) {
	if now.After(r.current.RefreshAt.Add(certificateOverdue)) && !r.overdueReported {
		r.overdueReported = true
		p.deps.Events.Eventf(pod.EventRef(of, ""), v1.EventTypeWarning, "CertificateOverdueForRefresh", "PodCertificate refresh overdue")
	}
	if now.After(r.notAfter) && !r.expiredReported {
		r.expiredReported = true
		p.deps.Events.Eventf(pod.EventRef(of, ""), v1.EventTypeWarning, "CertificateExpired", "PodCertificate expired")
	}
}
