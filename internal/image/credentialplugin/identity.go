package credentialplugin

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	authv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	records "k8s.io/kubelet/config/v1beta1"
)

// identity is the service account that a plugin is called for. The zero value is none.
type identity struct {
	account     *records.ImagePullServiceAccount
	annotations map[string]string
	token       string
}

// identity returns the identity of a pod. It is not ok if the plugin requires a service account,
// or an annotation on it, that the pod does not have.
func (p *plugin) identity(ctx context.Context, pod *v1.Pod) (id identity, ok bool, err error) {
	attributes, name := p.TokenAttributes, pod.Spec.ServiceAccountName
	if attributes == nil {
		return identity{}, true, nil
	}
	if name == "" { // a static pod
		return identity{}, !*attributes.RequireServiceAccount, nil
	}
	account, err := p.deps.Account(ctx, pod.Namespace, name)
	if err != nil {
		return identity{}, false, fmt.Errorf("read service account %s/%s: %w", pod.Namespace, name, err)
	}
	id.account = &records.ImagePullServiceAccount{UID: string(account.UID), Namespace: pod.Namespace, Name: name}
	id.annotations = map[string]string{}
	for _, key := range attributes.RequiredServiceAccountAnnotationKeys {
		if id.annotations[key], ok = account.Annotations[key]; !ok {
			p.deps.Log.Debug("credential plugin skipped: service account lacks a required annotation", "plugin", p.Name,
				"serviceAccount", pod.Namespace+"/"+name, "annotation", key)
			return identity{}, false, nil
		}
	}
	for _, key := range attributes.OptionalServiceAccountAnnotationKeys {
		if value, ok := account.Annotations[key]; ok {
			id.annotations[key] = value
		}
	}
	id.token, err = p.deps.Token(ctx, pod.Namespace, name, &authv1.TokenRequest{
		ObjectMeta: metav1.ObjectMeta{UID: account.UID},
		Spec: authv1.TokenRequestSpec{
			Audiences:      []string{attributes.ServiceAccountTokenAudience},
			BoundObjectRef: &authv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
		},
	})
	if err != nil {
		return identity{}, false, fmt.Errorf("get token of service account %s/%s: %w", pod.Namespace, name, err)
	}
	return id, true, nil
}

// key encodes the identity. Without the token, it is the same for all pods of the service
// account.
func (id identity) key(withToken bool) string {
	if id.account == nil {
		return ""
	}
	content := struct {
		Account     records.ImagePullServiceAccount
		Annotations map[string]string
		Token       string
	}{Account: *id.account, Annotations: id.annotations}
	if withToken {
		content.Token = fmt.Sprintf("%x", sha256.Sum256([]byte(id.token)))
	}
	key, err := json.Marshal(content) // with sorted annotations
	if err != nil {
		panic(err) // cannot happen: strings always encode
	}
	return string(key)
}
