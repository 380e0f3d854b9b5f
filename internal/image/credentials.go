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
	secret                    *v1.Secret // that it stands in; nil where every pod of the node may use it
	account                   *kubelet.ImagePullServiceAccount
	minted                    bool // by a plugin, for the account if there is one
}

// UnmarshalJSON reads an entry. Its "auth" field holds both parts and wins over them.
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
		return errors.New("auth is not base64") // the error would quote the secret
	}
	var ok bool
	l.username, l.password, ok = strings.Cut(string(decoded), ":")
	if !ok {
		return errors.New("auth must be base64 of username:password")
	}
	return nil
}

// parseConfigJSON reads the newer form: ~/.docker/config.json.
func parseConfigJSON(data []byte) (map[string]login, error) {
	var config struct {
		Auths map[string]login `json:"auths"`
	}
	if err := json.Unmarshal(data, &config); err != nil {
		return nil, hideContents(err)
	}
	return config.Auths, nil
}

// parseConfig reads the older form: ~/.dockercfg.
func parseConfig(data []byte) (map[string]login, error) {
	var config map[string]login
	if err := json.Unmarshal(data, &config); err != nil {
		return nil, hideContents(err)
	}
	return config, nil
}

// hideContents keeps what was read out of the error: it is a secret. Syntax errors name
// a character and a place only.
func hideContents(err error) error {
	var wrongType *json.UnmarshalTypeError
	if errors.As(err, &wrongType) {
		return fmt.Errorf("a %s where a %s belongs", wrongType.Value, wrongType.Type)
	}
	return err
}

// KeyringOf collects the credentials in image pull secrets. Secrets of other types are
// passed over; one that cannot be read is an error.
func KeyringOf(secrets []*v1.Secret) (*Keyring, error) {
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
		for where, l := range logins {
			l.secret = s
			logins[where] = l
		}
		k.add(logins)
	}
	return k, nil
}

// AddMinted adds what a credential plugin said, by what it opens, and the service account
// that it said it to; nil where every pod of the node would be told the same.
func (k *Keyring) AddMinted(auth map[string]credentialprovider.AuthConfig, to *kubelet.ImagePullServiceAccount) {
	logins := map[string]login{}
	for where, a := range auth {
		logins[where] = login{username: a.Username, password: a.Password, account: to, minted: true}
	}
	k.add(logins)
}
