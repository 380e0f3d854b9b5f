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

// holder is on whose behalf a plugin is asked: a service account's, or nobody's in particular.
type holder struct {
	account     *records.ImagePullServiceAccount
	annotations map[string]string
	token       string
}

// holder finds whom the pod stands for. It is not ok to ask a plugin that needs an account,
// or an annotation of it, for a pod that has none.
func (p *plugin) holder(ctx context.Context, of *v1.Pod) (who holder, ok bool, err error) {
	want, name := p.TokenAttributes, of.Spec.ServiceAccountName
	if want == nil {
		return holder{}, true, nil
	}
	if name == "" { // a static pod
		return holder{}, !*want.RequireServiceAccount, nil
	}
	account, err := p.deps.Account(ctx, of.Namespace, name)
	if err != nil {
		return holder{}, false, fmt.Errorf("read service account %s/%s: %w", of.Namespace, name, err)
	}
	who.account = &records.ImagePullServiceAccount{UID: string(account.UID), Namespace: of.Namespace, Name: name}
	who.annotations = map[string]string{}
	for _, key := range want.RequiredServiceAccountAnnotationKeys {
		if who.annotations[key], ok = account.Annotations[key]; !ok {
			p.deps.Log.Debug("a service account does not opt in to a credential plugin", "plugin", p.Name,
				"serviceAccount", of.Namespace+"/"+name, "annotation", key)
			return holder{}, false, nil
		}
	}
	for _, key := range want.OptionalServiceAccountAnnotationKeys {
		if value, ok := account.Annotations[key]; ok {
			who.annotations[key] = value
		}
	}
	who.token, err = p.deps.Token(ctx, of.Namespace, name, &authv1.TokenRequest{
		ObjectMeta: metav1.ObjectMeta{UID: account.UID},
		Spec: authv1.TokenRequestSpec{
			Audiences:      []string{want.ServiceAccountTokenAudience},
			BoundObjectRef: &authv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: of.Name, UID: of.UID},
		},
	})
	if err != nil {
		return holder{}, false, fmt.Errorf("get token of service account %s/%s: %w", of.Namespace, name, err)
	}
	return who, true, nil
}

// key stands for the holder: those with the same key are told the same. With the token, it
// stands for one pod's token only.
func (h holder) key(withToken bool) string {
	if h.account == nil {
		return ""
	}
	content := struct {
		Account     records.ImagePullServiceAccount
		Annotations map[string]string
		Token       string
	}{Account: *h.account, Annotations: h.annotations}
	if withToken {
		content.Token = fmt.Sprintf("%x", sha256.Sum256([]byte(h.token)))
	}
	key, err := json.Marshal(content) // with sorted annotations
	if err != nil {
		panic(err) // strings are never refused
	}
	return string(key)
}
