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

// decodeResponse reads an answer, which must be of the version that was asked in. The
// versions have the same fields. Errors name fields, but repeat no values: they are secrets.
func decodeResponse(data []byte, version string) (*api.CredentialProviderResponse, error) {
	var kind metav1.TypeMeta
	if err := json.Unmarshal(data, &kind); err != nil {
		return nil, hideValues(err)
	}
	if kind.APIVersion != version || kind.Kind != "CredentialProviderResponse" {
		return nil, fmt.Errorf("not a CredentialProviderResponse of %s", version)
	}
	response := &api.CredentialProviderResponse{}
	unknown, err := strictjson.UnmarshalStrict(data, response)
	if err != nil {
		return nil, hideValues(err)
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

// hideValues: a syntax error names a character and a place only.
func hideValues(err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("byte %d: %w", syntax.Offset, err)
	}
	return errors.New("a field has a value that does not belong there")
}
