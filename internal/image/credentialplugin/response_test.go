package credentialplugin

import (
	"strings"
	"testing"

	api "k8s.io/kubelet/pkg/apis/credentialprovider/v1"
)

const answered = `{"kind":"CredentialProviderResponse","apiVersion":"credentialprovider.kubelet.k8s.io/v1",`

func TestResponses(t *testing.T) {
	for _, test := range []struct{ name, data, want string }{
		{"whole", answered + `"cacheKeyType":"Image","cacheDuration":"1m","auth":{"a.io":{"username":"u","password":"p"}}}`, ""},
		{"none", answered + `"cacheKeyType":"Global","auth":null}`, ""},
		{"nothing", ``, "byte 0: unexpected end of JSON input"},
		{"no JSON", `kind: x`, "byte 1: invalid character 'k' looking for beginning of value"},
		{"two", answered + `"cacheKeyType":"Image"}{}`, "invalid character '{' after top-level value"},
		{"another kind", `{"kind":"CredentialProviderRequest","apiVersion":"credentialprovider.kubelet.k8s.io/v1"}`, "not a CredentialProviderResponse of credentialprovider.kubelet.k8s.io/v1"},
		{"no kind", `{}`, "not a CredentialProviderResponse of credentialprovider.kubelet.k8s.io/v1"},
		{"no cache key", answered + `"auth":{}}`, "cacheKeyType: must be one of [Image Registry Global]"},
		{"another cache key", answered + `"cacheKeyType":"image"}`, "cacheKeyType: must be one of [Image Registry Global]"},
		{"an unknown field", answered + `"cacheKeyType":"Image","auth":{"a.io":{"token":"hunter2"}}}`, `unknown field "auth.a.io.token"`},
		{"a field twice", answered + `"cacheKeyType":"Image","cacheKeyType":"Global"}`, `duplicate field "cacheKeyType"`},
		{"another case", answered + `"cachekeytype":"Image"}`, `unknown field "cachekeytype"`},
		{"a wrong type", answered + `"cacheKeyType":"Image","auth":{"a.io":"hunter2"}}`, "a field has a value that does not belong there"},
		{"no duration", answered + `"cacheKeyType":"Image","cacheDuration":"hunter2"}`, "a field has a value that does not belong there"},
		{"a number for a kind", `{"kind":1}`, "a field has a value that does not belong there"},
	} {
		_, err := decodeResponse([]byte(test.data), api.SchemeGroupVersion.String())
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error tells a secret: %v", test.name, err)
		}
	}
}

// A plugin may write anything; what is accepted is whole.
func FuzzResponse(f *testing.F) {
	f.Add([]byte(answered + `"cacheKeyType":"Image","cacheDuration":"1m","auth":{"a.io":{"username":"u","password":"p"}}}`))
	f.Add([]byte(answered + `"cacheKeyType":"Global","auth":null}`))
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
