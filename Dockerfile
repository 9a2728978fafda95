# The study with the CPU build of torch: docker build -t heads-hypothesis . && docker run -it -p 8888:8888 heads-hypothesis
FROM python:3.12-slim-bookworm
RUN apt-get update && apt-get install --yes --no-install-recommends git make && rm -rf /var/lib/apt/lists/*
# JupyterLab refuses to run as root.
RUN useradd --create-home study && install --directory --owner study /study
USER study
WORKDIR /study
# The packages first, so that a change of the study does not install them again.
COPY --chown=study Makefile pyproject.toml requirements.lock requirements-site.lock README.md ./
COPY --chown=study analysis/study/machine.py analysis/study/machine.py
COPY --chown=study analysis/__init__.py analysis/__init__.py
COPY --chown=study tools/install.py tools/install.py
RUN make install install-site TORCH=cpu
COPY --chown=study . .
# Outside of the container, JupyterLab is reached at all its addresses alone.
CMD ["make", "notebook", "LAB=--ip=0.0.0.0 --no-browser"]
