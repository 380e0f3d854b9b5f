package credentialplugin

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	api "k8s.io/kubelet/pkg/apis/credentialprovider/v1"
	strictjson "sigs.k8s.io/json"
)

// decodeResponse decodes a response, which must have the version of the request. All versions
// have the same fields. Errors name fields but never values, which are secrets.
func decodeResponse(data []byte, version string) (*api.CredentialProviderResponse, error) {
	var kind metav1.TypeMeta
	if err := json.Unmarshal(data, &kind); err != nil {
		return nil, redact(err)
	}
	if kind.APIVersion != version || kind.Kind != "CredentialProviderResponse" {
		return nil, fmt.Errorf("kind and apiVersion: not a CredentialProviderResponse of %s", version)
	}
	response := &api.CredentialProviderResponse{}
	unknown, err := strictjson.UnmarshalStrict(data, response)
	if err != nil {
		return nil, redact(err)
	}
	if len(unknown) > 0 {
		return nil, errors.Join(unknown...)
	}
	known := []api.PluginCacheKeyType{api.ImagePluginCacheKeyType, api.RegistryPluginCacheKeyType, api.GlobalPluginCacheKeyType}
	if !slices.Contains(known, response.CacheKeyType) {
		return nil, fmt.Errorf("cacheKeyType: must be one of %v", known)
	}
	return response, nil
}

// redact removes values from a JSON error. Syntax errors name only a character and an offset.
func redact(err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("byte %d: %w", syntax.Offset, err)
	}
	return errors.New("a field has a value of the wrong type")
}
