package server

import (
	"fmt"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
	"k8s.io/client-go/tools/cache"
)

// directStorage gives resources an etcd3 store whose client calls the etcd member in this process. The
// factory of the API server library would open a gRPC connection for each resource, with nine goroutines.
type directStorage struct {
	generic.RESTOptionsGetter
	client *kubernetes.Client
}

func newDirectStorage(options generic.RESTOptionsGetter, client *clientv3.Client) *directStorage {
	client.KV = etcd3.NewETCDLatencyTracker(client.KV)
	c := &kubernetes.Client{Client: client}
	c.Kubernetes = c
	return &directStorage{RESTOptionsGetter: options, client: c}
}

// GetRESTOptions returns the options for a resource, with our store.
func (d *directStorage) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	options, err := d.RESTOptionsGetter.GetRESTOptions(resource, example)
	options.Decorator = d.store
	return options, err
}

// store is a generic.StorageDecorator. It creates the store as storagebackend/factory does.
func (d *directStorage) store(config *storagebackend.ConfigForResource, prefix string, _ func(runtime.Object) (string, error),
	newObject, newList func() runtime.Object, _ storage.AttrFunc, _ storage.IndexerFuncs, _ *cache.Indexers,
) (storage.Interface, factory.DestroyFunc, error) {
	transformer := config.Transformer
	if transformer == nil {
		transformer = identity.NewEncryptCheckTransformer()
	}
	versioner := storage.APIObjectVersioner{}
	store, err := etcd3.New(d.client, nil, config.Codec, newObject, newList, config.Prefix, prefix, config.GroupResource,
		transformer, config.LeaseManagerConfig, etcd3.NewDefaultDecoder(config.Codec, versioner), versioner)
	if err != nil {
		return nil, nil, fmt.Errorf("create store of %s: %w", config.GroupResource, err)
	}
	return store, sync.OnceFunc(store.Close), nil
}
