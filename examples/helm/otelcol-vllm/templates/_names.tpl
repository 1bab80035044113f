{{/* What the objects of the release have in their names. Short, because the names of pods and
     of revisions add to it. */}}
{{- define "otelcol-vllm.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride }}
{{- else if contains .Chart.Name .Release.Name -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" (.Release.Name | trunc 27 | trimSuffix "-") .Chart.Name }}
{{- end -}}
{{- end }}

{{/* agent, pool or gateway: pool-label and shards are pools that find their pods in another way.
     Empty for the mode content. */}}
{{- define "otelcol-vllm.component" -}}
{{- if has .Values.mode (list "pool" "pool-label" "shards") -}}
pool
{{- else if ne .Values.mode "content" -}}
{{ .Values.mode }}
{{- end -}}
{{- end }}

{{- define "otelcol-vllm.name" -}}
{{ include "otelcol-vllm.fullname" . }}-{{ include "otelcol-vllm.component" . }}
{{- end }}

{{/* What a selector may contain: never a version, because selectors cannot change. */}}
{{- define "otelcol-vllm.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: {{ include "otelcol-vllm.component" . }}
{{- end }}

{{/* Labels that do not say what an object is part of. */}}
{{- define "otelcol-vllm.release" -}}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "otelcol-vllm.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/component: {{ include "otelcol-vllm.component" . }}
{{ include "otelcol-vllm.release" . }}
{{- end }}

{{- define "otelcol-vllm.image" -}}
{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{/* The port of an address: that it names, or that of its scheme. */}}
{{- define "otelcol-vllm.port" -}}
{{- $url := urlParse . -}}
{{- $port := regexFind ":[0-9]+$" $url.host | trimPrefix ":" -}}
{{ $port | default (ternary "443" "80" (eq $url.scheme "https")) }}
{{- end }}
