package kubeclient

import (
	"fmt"
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// Client sends requests to the API server. It has a REST client for each API group; all of them share one
// HTTP client and one rate limit.
type Client struct {
	core, authentication, authorization, certificates rest.Interface
	coordination, node, resource, storage             rest.Interface
}

var _ Interface = (*Client)(nil)

// New returns a client with the connection settings of config, whose requests transport sends. It opens no
// connection.
func New(config *rest.Config, transport *http.Client) (*Client, error) {
	shared := *config
	if shared.RateLimiter == nil && shared.QPS > 0 {
		if shared.Burst <= 0 {
			return nil, fmt.Errorf("new client for %s: rate limit of %g requests per second needs a burst", config.Host, config.QPS)
		}
		shared.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(shared.QPS, shared.Burst)
	}
	shared.NegotiatedSerializer = rest.CodecFactoryForGeneratedClient(Scheme, codecs).WithoutConversion()
	c := &Client{}
	for _, group := range []struct {
		client  *rest.Interface
		version schema.GroupVersion
	}{
		{&c.core, v1.SchemeGroupVersion},
		{&c.authentication, authenticationv1.SchemeGroupVersion},
		{&c.authorization, authorizationv1.SchemeGroupVersion},
		{&c.certificates, certificatesv1.SchemeGroupVersion},
		{&c.coordination, coordinationv1.SchemeGroupVersion},
		{&c.node, nodev1.SchemeGroupVersion},
		{&c.resource, resourcev1.SchemeGroupVersion},
		{&c.storage, storagev1.SchemeGroupVersion},
	} {
		ofGroup := shared
		ofGroup.GroupVersion, ofGroup.APIPath = &group.version, "/apis"
		if group.version.Group == "" {
			ofGroup.APIPath = "/api"
		}
		made, err := rest.RESTClientForConfigAndClient(&ofGroup, transport)
		if err != nil {
			return nil, fmt.Errorf("new client for %s, %s: %w", config.Host, group.version, err)
		}
		*group.client = made
	}
	return c, nil
}

// Core sends requests to the core group whose responses the caller decodes.
func (c *Client) Core() rest.Interface { return c.core }
