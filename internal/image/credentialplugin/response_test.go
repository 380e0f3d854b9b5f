package credentialplugin

import (
	"strings"
	"testing"

	api "k8s.io/kubelet/pkg/apis/credentialprovider/v1"
)

const responseHeader = `{"kind":"CredentialProviderResponse","apiVersion":"credentialprovider.kubelet.k8s.io/v1",`

func TestDecodeResponse(t *testing.T) {
	for _, test := range []struct{ name, data, want string }{
		{"complete", responseHeader + `"cacheKeyType":"Image","cacheDuration":"1m","auth":{"a.io":{"username":"u","password":"p"}}}`, ""},
		{"no credentials", responseHeader + `"cacheKeyType":"Global","auth":null}`, ""},
		{"empty output", ``, "byte 0: unexpected end of JSON input"},
		{"not JSON", `kind: x`, "byte 1: invalid character 'k' looking for beginning of value"},
		{"two documents", responseHeader + `"cacheKeyType":"Image"}{}`, "invalid character '{' after top-level value"},
		{"another kind", `{"kind":"CredentialProviderRequest","apiVersion":"credentialprovider.kubelet.k8s.io/v1"}`, "not a CredentialProviderResponse of credentialprovider.kubelet.k8s.io/v1"},
		{"no kind", `{}`, "not a CredentialProviderResponse of credentialprovider.kubelet.k8s.io/v1"},
		{"no cache key", responseHeader + `"auth":{}}`, "cacheKeyType: must be one of [Image Registry Global]"},
		{"unknown cache key type", responseHeader + `"cacheKeyType":"image"}`, "cacheKeyType: must be one of [Image Registry Global]"},
		{"unknown field", responseHeader + `"cacheKeyType":"Image","auth":{"a.io":{"token":"hunter2"}}}`, `unknown field "auth.a.io.token"`},
		{"duplicate field", responseHeader + `"cacheKeyType":"Image","cacheKeyType":"Global"}`, `duplicate field "cacheKeyType"`},
		{"field in wrong case", responseHeader + `"cachekeytype":"Image"}`, `unknown field "cachekeytype"`},
		{"wrong type", responseHeader + `"cacheKeyType":"Image","auth":{"a.io":"hunter2"}}`, "a field has a value of the wrong type"},
		{"invalid duration", responseHeader + `"cacheKeyType":"Image","cacheDuration":"hunter2"}`, "a field has a value of the wrong type"},
		{"number as kind", `{"kind":1}`, "a field has a value of the wrong type"},
	} {
		_, err := decodeResponse([]byte(test.data), api.SchemeGroupVersion.String())
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error contains a secret: %v", test.name, err)
		}
	}
}

// A plugin may write anything; every accepted response is complete.
func FuzzResponse(f *testing.F) {
	f.Add([]byte(responseHeader + `"cacheKeyType":"Image","cacheDuration":"1m","auth":{"a.io":{"username":"u","password":"p"}}}`))
	f.Add([]byte(responseHeader + `"cacheKeyType":"Global","auth":null}`))
	f.Add([]byte(`{"kind":1}`))
	f.Add([]byte(``))
	f.Fuzz(func(t *testing.T, data []byte) {
		response, err := decodeResponse(data, api.SchemeGroupVersion.String())
		if (err == nil) != (response != nil) {
			t.Fatalf("%v, %v", response, err)
		}
		if err == nil && (response.Kind != "CredentialProviderResponse" || response.APIVersion != api.SchemeGroupVersion.String() || response.CacheKeyType == "") {
			t.Errorf("accepted %+v", response)
		}
	})
}
