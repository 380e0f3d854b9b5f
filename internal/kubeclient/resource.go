package kubeclient

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// apiObject is a pointer to an API object.
type apiObject interface {
	runtime.Object
	metav1.Object
}

// resource implements Resource. The namespace is empty for kinds without one, and for all namespaces. T and
// L are pointers: the compiler then generates the methods once for all kinds.
type resource[T apiObject, L runtime.Object] struct {
	rest      rest.Interface
	namespace string
	name      string // of the resource: "pods"
	newObject func() T
	newList   func() L
}

// requestTimeout limits each request but watches, with its retries. The API server itself ends a request after
// a minute; a proxy in between, or one that hangs, may never answer. Callers that cannot wait so long have
// deadlines of their own.
const requestTimeout = 90 * time.Second

// client-go repeats a GET once a second, up to ten times, if the connection is reset or the API server asks for it.
// Behind a load balancer without a backend each watch of a node would send a request a second. Reflectors have a
// back-off that grows, so nothing is repeated for them; other reads are repeated once.
const listRetries, getRetries = 0, 1

func limit(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, requestTimeout)
}

// request adds to a request what all have in common: as with client-go's typed clients, protobuf is the
// wire format unless the configuration has another.
func (r *resource[T, L]) request(of *rest.Request) *rest.Request {
	return of.UseProtobufAsDefault().NamespaceIfScoped(r.namespace, r.namespace != "").Resource(r.name)
}

func (r *resource[T, L]) Get(ctx context.Context, name string, opts metav1.GetOptions) (T, error) {
	ctx, cancel := limit(ctx)
	defer cancel()
	got := r.newObject()
	err := r.request(r.rest.Get()).MaxRetries(getRetries).Name(name).VersionedParams(&opts, parameterCodec).Do(ctx).Into(got)
	return got, err
}

func (r *resource[T, L]) List(ctx context.Context, opts metav1.ListOptions) (L, error) {
	ctx, cancel := limit(ctx)
	defer cancel()
	got := r.newList()
	err := r.request(r.rest.Get()).MaxRetries(listRetries).VersionedParams(&opts, parameterCodec).Timeout(timeout(opts)).Do(ctx).Into(got)
	return got, err
}

func (r *resource[T, L]) Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	opts.Watch = true
	return r.request(r.rest.Get()).MaxRetries(listRetries).VersionedParams(&opts, parameterCodec).Timeout(timeout(opts)).Watch(ctx)
}

func (r *resource[T, L]) Create(ctx context.Context, object T, opts metav1.CreateOptions) (T, error) {
	ctx, cancel := limit(ctx)
	defer cancel()
	got := r.newObject()
	err := r.request(r.rest.Post()).VersionedParams(&opts, parameterCodec).Body(object).Do(ctx).Into(got)
	return got, err
}

func (r *resource[T, L]) Update(ctx context.Context, object T, opts metav1.UpdateOptions) (T, error) {
	ctx, cancel := limit(ctx)
	defer cancel()
	got := r.newObject()
	err := r.request(r.rest.Put()).Name(object.GetName()).VersionedParams(&opts, parameterCodec).Body(object).Do(ctx).Into(got)
	return got, err
}

func (r *resource[T, L]) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (T, error) {
	ctx, cancel := limit(ctx)
	defer cancel()
	got := r.newObject()
	err := r.request(r.rest.Patch(kind)).Name(name).SubResource(subresources...).VersionedParams(&opts, parameterCodec).Body(data).Do(ctx).Into(got)
	return got, err
}

func (r *resource[T, L]) Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error {
	ctx, cancel := limit(ctx)
	defer cancel()
	return r.request(r.rest.Delete()).Name(name).Body(&opts).Do(ctx).Error()
}

func (r *resource[T, L]) DeleteCollection(ctx context.Context, opts metav1.DeleteOptions, list metav1.ListOptions) error {
	ctx, cancel := limit(ctx)
	defer cancel()
	return r.request(r.rest.Delete()).VersionedParams(&list, parameterCodec).Timeout(timeout(list)).Body(&opts).Do(ctx).Error()
}

// timeout returns the time after which the API server ends a list or a watch, 0 for none.
func timeout(opts metav1.ListOptions) time.Duration {
	if opts.TimeoutSeconds == nil {
		return 0
	}
	return time.Duration(*opts.TimeoutSeconds) * time.Second
}
