{{/*
Each template takes the context of the chart that uses it, which has this one among its
dependencies under its own name. README.md has an example.
*/}}

{{/* What the templates need: this chart's values and files, after a check of what is required. */}}
{{- define "otelcol-vllm-sidecar.values" -}}
{{- $own := get .Subcharts "otelcol-vllm-sidecar" -}}
{{- if not $own -}}
{{- fail "the chart otelcol-vllm-sidecar is not among the dependencies of this chart under its own name" -}}
{{- end -}}
{{- $v := $own.Values -}}
{{- if not $v.image.repository -}}
{{- fail "otelcol-vllm-sidecar.image.repository is empty. Write the name of the image, or leave the key out for ghcr.io/otelcol-vllm/otelcol-vllm" -}}
{{- end -}}
{{- if not $v.backend.endpoint -}}
{{- fail "otelcol-vllm-sidecar.backend.endpoint is not set. Write the base address of the OTLP backend, such as https://otlp.example.com" -}}
{{- end -}}
{{- if eq (empty $v.backend.authorization) (empty $v.backend.existingSecret) -}}
{{- fail "set one of otelcol-vllm-sidecar.backend.authorization and otelcol-vllm-sidecar.backend.existingSecret" -}}
{{- end -}}
{{- $v | toYaml -}}
{{- end }}

{{- define "otelcol-vllm-sidecar.name" -}}
{{- $v := include "otelcol-vllm-sidecar.values" . | fromYaml -}}
{{ $v.fullnameOverride | default (printf "%s-otelcol-vllm-sidecar" (.Release.Name | trunc 40 | trimSuffix "-")) }}
{{- end }}

{{/* ConfigMaps and the Secret: a file of your chart that contains nothing but this. */}}
{{- define "otelcol-vllm-sidecar.objects" -}}
{{- $v := include "otelcol-vllm-sidecar.values" . | fromYaml -}}
{{- $own := get .Subcharts "otelcol-vllm-sidecar" -}}
{{- $name := include "otelcol-vllm-sidecar.name" . -}}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ $name }}
  namespace: {{ .Release.Namespace }}
data:
  collector.yaml: |
    {{- $own.Files.Get "files/collector.yaml" | replace "http://127.0.0.1:8000\n" (printf "http://127.0.0.1:%v\n" $v.port) | nindent 4 }}
  {{- if $v.probes }}
  probes.yaml: |
    {{- $own.Files.Get "files/probes.yaml" | nindent 4 }}
  {{- end }}
  {{- if $v.config }}
  own.yaml: |
    {{- toYaml $v.config | nindent 4 }}
  {{- end }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ $name }}-settings
  namespace: {{ .Release.Namespace }}
data:
  OTLP_ENDPOINT: {{ $v.backend.endpoint | quote }}
{{- if $v.backend.authorization }}
---
apiVersion: v1
kind: Secret
metadata:
  name: {{ $name }}-backend
  namespace: {{ .Release.Namespace }}
type: Opaque
data:
  OTLP_AUTHORIZATION: {{ $v.backend.authorization | b64enc }}
{{- end }}
{{- end }}

{{/* For an annotation of the pods, so that a change of the configuration rolls them. */}}
{{- define "otelcol-vllm-sidecar.checksum" -}}
{{ include "otelcol-vllm-sidecar.objects" . | sha256sum }}
{{- end }}

{{/* One entry of the list "containers". */}}
{{- define "otelcol-vllm-sidecar.container" -}}
{{- $v := include "otelcol-vllm-sidecar.values" . | fromYaml -}}
{{- $own := get .Subcharts "otelcol-vllm-sidecar" -}}
{{- $name := include "otelcol-vllm-sidecar.name" . -}}
{{- $limit := $v.resources.limits.memory -}}
- name: collector
  image: {{ $v.image.repository }}{{ if $v.image.digest }}@{{ $v.image.digest }}{{ else }}:{{ $v.image.tag | default $own.Chart.AppVersion }}{{ end }}
  args:
    - --config=/etc/otelcol-vllm/collector.yaml
    {{- if $v.probes }}
    - --config=/etc/otelcol-vllm/probes.yaml
    {{- end }}
    {{- if $v.config }}
    - --config=/etc/otelcol-vllm/own.yaml
    {{- end }}
  env:
    - name: POD_IP
      valueFrom:
        fieldRef:
          fieldPath: status.podIP
    - name: POD_NAME
      valueFrom:
        fieldRef:
          fieldPath: metadata.name
    - name: POD_NAMESPACE
      valueFrom:
        fieldRef:
          fieldPath: metadata.namespace
    - name: POD_UID
      valueFrom:
        fieldRef:
          fieldPath: metadata.uid
    - name: K8S_NODE_NAME
      valueFrom:
        fieldRef:
          fieldPath: spec.nodeName
    # 25/32 of the memory limit, so that Go collects garbage before the kernel kills.
    - name: GOMEMLIMIT
      value: {{ div (mul (regexFind "^[0-9]+" $limit | int64) (ternary 1024 1 (hasSuffix "Gi" $limit)) 25) 32 }}MiB
  envFrom:
    - configMapRef:
        name: {{ $name }}-settings
    - secretRef:
        name: {{ $v.backend.existingSecret | default (printf "%s-backend" $name) }}
  ports:
    - name: otelcol-health
      containerPort: 13133
    - name: otelcol-metrics
      containerPort: 8888
  # The start includes the check and the compaction of the files on disk. It may take five
  # minutes before the liveness probe begins.
  startupProbe:
    httpGet:
      path: /
      port: otelcol-health
    periodSeconds: 5
    failureThreshold: 60
  # No readinessProbe: a collector that is not ready must not take the model out of its
  # Service.
  livenessProbe:
    httpGet:
      path: /
      port: otelcol-health
    periodSeconds: 15
    timeoutSeconds: 5
    failureThreshold: 4
  resources:
    {{- toYaml $v.resources | nindent 4 }}
  # All at the container, because the pod's own belongs to vLLM.
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities:
      drop: [ALL]
    seccompProfile:
      type: RuntimeDefault
  volumeMounts:
    - name: otelcol-vllm-config
      mountPath: /etc/otelcol-vllm
      readOnly: true
    - name: otelcol-vllm-queue
      mountPath: /var/lib/otelcol-vllm
{{- end }}

{{/* The liveness probe of the vLLM container, with the value "probes". */}}
{{- define "otelcol-vllm-sidecar.livenessProbe" -}}
{{- $v := include "otelcol-vllm-sidecar.values" . | fromYaml -}}
{{- if $v.probes -}}
livenessProbe:
  exec:
    # It fails only on an answer of vllm_fleet that says so. A sidecar that is down, starts,
    # hangs or does not know the server, and an image without curl, restart nothing.
    command:
      - sh
      - -c
      - >-
        ! curl -s -m 3 --noproxy '*'
        'http://127.0.0.1:55690/probe/127.0.0.1:{{ $v.port }}?for=liveness'
        | grep -q '"serve":false'
  # For longer than two scrapes: until then the sidecar may still know the engine that was
  # restarted. A model that loads takes as long as it needs.
  initialDelaySeconds: 60
  periodSeconds: 10
  # Longer than curl waits: the kubelet counts a command that takes longer as failed.
  timeoutSeconds: 10
  failureThreshold: 3
{{- end }}
{{- end }}

{{/* Two entries of the list "volumes". */}}
{{- define "otelcol-vllm-sidecar.volumes" -}}
- name: otelcol-vllm-config
  configMap:
    name: {{ include "otelcol-vllm-sidecar.name" . }}
# Outlives a crash of the container, not the pod.
- name: otelcol-vllm-queue
  emptyDir:
    sizeLimit: 512Mi
{{- end }}
