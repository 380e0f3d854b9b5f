package image

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	kubelet "k8s.io/kubelet/config/v1beta1"
	credentialprovider "k8s.io/kubelet/pkg/apis/credentialprovider/v1"
)

// login is one entry of a docker configuration.
type login struct {
	username, password, email string
	secret                    *v1.Secret // that holds the entry; nil where every pod of the node may use it
	serviceAccount            *kubelet.ImagePullServiceAccount
	fromPlugin                bool // issued by a plugin, for the account if there is one
}

// UnmarshalJSON decodes an entry. The field "auth" holds user name and password and takes
// precedence over the separate fields.
func (l *login) UnmarshalJSON(data []byte) error {
	var entry struct {
		Username string `json:"username"`
		Password string `json:"password"`
		Email    string `json:"email"`
		Auth     string `json:"auth"`
	}
	if err := json.Unmarshal(data, &entry); err != nil {
		return err
	}
	l.username, l.password, l.email = entry.Username, entry.Password, entry.Email
	if entry.Auth == "" {
		return nil
	}
	decoded, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(strings.TrimSpace(entry.Auth), "="))
	if err != nil {
		return errors.New("decode auth: not base64") // the decoder's error would quote the secret
	}
	var ok bool
	l.username, l.password, ok = strings.Cut(string(decoded), ":")
	if !ok {
		return errors.New("decode auth: not base64 of username:password")
	}
	return nil
}

// parseConfigJSON reads the newer form: ~/.docker/config.json.
func parseConfigJSON(data []byte) (map[string]login, error) {
	var config struct {
		Auths map[string]login `json:"auths"`
	}
	if err := json.Unmarshal(data, &config); err != nil {
		return nil, redact(err)
	}
	return config.Auths, nil
}

// parseConfig reads the older form: ~/.dockercfg.
func parseConfig(data []byte) (map[string]login, error) {
	var config map[string]login
	if err := json.Unmarshal(data, &config); err != nil {
		return nil, redact(err)
	}
	return config, nil
}

// redact removes secret data from a JSON error. Syntax errors name only a character and
// an offset.
func redact(err error) error {
	var wrongType *json.UnmarshalTypeError
	if errors.As(err, &wrongType) {
		return fmt.Errorf("decode docker config: got %s, want %s", wrongType.Value, wrongType.Type)
	}
	return err
}

// NewKeyring returns the credentials in image pull secrets. It ignores secrets of other types
// and fails on one that it cannot parse.
func NewKeyring(secrets []*v1.Secret) (*Keyring, error) {
	k := &Keyring{}
	for _, s := range secrets {
		var logins map[string]login
		var err error
		switch data := s.Data; {
		case s.Type == v1.SecretTypeDockerConfigJson && len(data[v1.DockerConfigJsonKey]) > 0:
			logins, err = parseConfigJSON(data[v1.DockerConfigJsonKey])
		case s.Type == v1.SecretTypeDockercfg && len(data[v1.DockerConfigKey]) > 0:
			logins, err = parseConfig(data[v1.DockerConfigKey])
		}
		if err != nil {
			return nil, fmt.Errorf("read image pull secret %s/%s: %w", s.Namespace, s.Name, err)
		}
		for registry, l := range logins {
			l.secret = s
			logins[registry] = l
		}
		k.add(logins)
	}
	return k, nil
}

// AddFromPlugin adds the response of a credential plugin, keyed by registry. account is the service
// account that the plugin issued it for; nil where every pod of the node gets the same response.
func (k *Keyring) AddFromPlugin(auth map[string]credentialprovider.AuthConfig, account *kubelet.ImagePullServiceAccount) {
	logins := map[string]login{}
	for registry, a := range auth {
		logins[registry] = login{username: a.Username, password: a.Password, serviceAccount: account, fromPlugin: true}
	}
	k.add(logins)
}
